"""The colours that figures and reports share, which colour-blind readers can tell apart.

Okabe & Ito, Color Universal Design (2008), https://jfly.uni-koeln.de/color/.
"""

from __future__ import annotations

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The models, in their order; the first is the colour of a model alone."""
ON_DARK = ("#56B4E9", "#FF8A3D", "#2BC79A", "#E79CC6", "#F0B93A", "#9AD3F5")
"""The same hues, bright enough for a dark page."""
IDEAL = "#767676"
"""What a perfect model would do."""
