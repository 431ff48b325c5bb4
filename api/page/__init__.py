"""The page: plans, comparisons and recommendations to look at. It only presents."""
