"""The paper: its methods, the queries that only they ask, and its theory.

Mahpud and Sheffet, "A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable Input"
(NeurIPS 2025).
"""
