"""The related work: other private estimators, the queries that only they ask, and methods side by side."""
