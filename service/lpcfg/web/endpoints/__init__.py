"""The endpoints: requests read, work started, answers written."""
