"""From summaries to estimates with intervals: draws, passes, intervals, differences, raters."""
