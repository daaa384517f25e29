"""The running scheduler: it follows changes, runs cycles, writes decisions and answers requests. All I/O is here."""
