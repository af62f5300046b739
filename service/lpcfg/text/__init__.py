"""Text: files read, sentences and tokens found."""
