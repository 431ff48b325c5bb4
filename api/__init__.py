"""The service: plans over REST, stored scenarios and comparisons."""
