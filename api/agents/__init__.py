"""The tools of agents, behind the service's keys."""
