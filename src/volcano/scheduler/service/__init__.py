"""The running scheduler: follows changes, takes turns, sends plans, answers questions. Its only I/O is here."""
