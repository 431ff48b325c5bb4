"""Reading the arguments, defaults and memory rules of serving engines from their packages."""
