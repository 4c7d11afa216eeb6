"""The paper's theory: constants, bounds and sample sizes. Public numbers in, public numbers out."""
