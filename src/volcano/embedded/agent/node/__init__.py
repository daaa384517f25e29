"""The Node objects of an agent: settings, capacity, registration and lease renewal. Nothing about pods."""
