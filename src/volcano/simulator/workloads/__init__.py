"""Where simulated jobs come from: traces in known formats, scenarios, generators."""
