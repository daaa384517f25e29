"""What may be written: defaults and validation of each kind of Volcano's, in process or as a webhook. Pure."""
