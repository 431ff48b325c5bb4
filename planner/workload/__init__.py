"""What a deployment has to do: lengths of requests and how they are distributed."""
