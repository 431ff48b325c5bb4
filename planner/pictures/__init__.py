"""Pictures of answers: Vega-Lite specifications, files made of them, and plots for a terminal.

A picture presents columns that plans, sweeps and placements return; no figure is computed here
beyond choosing which points are drawn.
"""

from planner.pictures.charts import CHARTS, chart
from planner.pictures.view import View, look

__all__ = ["CHARTS", "View", "chart", "look"]
