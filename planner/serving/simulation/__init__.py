"""One replica's requests through the schedule of its engine, event by event."""
