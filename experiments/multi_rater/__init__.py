"""MR: is the error by all raters steadier than that by one? (`segmentation`)."""
