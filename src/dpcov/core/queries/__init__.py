"""The core's queries: each an object with its cost, its row task and its noise, and a proof note beside."""
