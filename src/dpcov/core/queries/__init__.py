"""The queries of the default method: what they compute from rows, with proof notes."""
