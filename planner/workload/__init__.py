"""What is asked of a deployment: lengths of requests and how they are distributed."""
