"""Every method by name: where it comes from, what it guarantees, what it assumes and must be told."""

from __future__ import annotations

from fractions import Fraction

from dpcov.methods.method import Method

_BUILT = (
    Method(
        name="whitening",
        citation="dpcov, after Mahpud, Sheffet: A Private Approximation of the 2nd-Moment Matrix of Any "
        "Subsamplable Input (NeurIPS 2025)",
        privacy="mu-GDP and rho-zCDP",
        needs="nothing",
        assumes="nothing; least accurate where a few rows carry most of a direction's variance",
        algorithm="dpcov.methods.whitening.method:estimate_whitening",
        scans=15,
        takes_units=True,
        gram_noise=True,
        gaussian=True,
    ),
    Method(
        name="recursive",
        citation="Mahpud, Sheffet: A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable "
        "Input (NeurIPS 2025), Algorithms 1 and 2",
        privacy="mu-GDP and rho-zCDP; delta-approximate zCDP if it has to find the least eigenvalue",
        needs="least_eigenvalue, or a delta to find it; m, alpha and radius save budget",
        assumes="random groups of m rows keep the second moment up to 1 +- alpha",
        algorithm="dpcov.paper.recursive:estimate_recursive",
        gaussian=True,
        delta_share=lambda options: Fraction(1 if options.get("least_eigenvalue") is None else 0, 10),
    ),
    Method(
        name="aggregate",
        citation="Mahpud, Sheffet (NeurIPS 2025), Algorithm 3, after Ashtiani, Liaw: Private and polynomial "
        "time algorithms for learning Gaussians and beyond (COLT 2022)",
        privacy="delta-approximate rho-zCDP",
        needs="m, alpha and a delta; very many rows",
        assumes="random groups of m rows keep the second moment up to 1 +- alpha",
        algorithm="dpcov.paper.aggregate:estimate_aggregate",
        delta_share=lambda _options: Fraction(1, 2),
        requires=("m",),
    ),
    Method(
        name="gaussian",
        citation="Dwork, Talwar, Thakurta, Zhang: Analyze Gauss (STOC 2014)",
        privacy="mu-GDP and rho-zCDP",
        needs="radius",
        assumes="no row is longer than radius; errors are relative to the largest eigenvalue",
        algorithm="dpcov.methods.gaussian:estimate_gaussian",
        scans=1,
        takes_units=True,
        gram_noise=True,
        gaussian=True,
        requires=("radius",),
    ),
    Method(
        name="coinpress",
        citation="Biswas, Dong, Kamath, Ullman: CoinPress: Practical Private Mean and Covariance Estimation "
        "(NeurIPS 2020)",
        privacy="mu-GDP and rho-zCDP",
        needs="largest_eigenvalue, and rounds to suit the least one",
        assumes="Gaussian rows with mean zero",
        algorithm="dpcov.rivals.coinpress:estimate_coinpress",
        gaussian=True,
        requires=("largest_eigenvalue",),
    ),
    Method(
        name="preconditioning",
        citation="Kamath, Li, Singhal, Ullman: Privately Learning High-Dimensional Distributions (COLT 2019)",
        privacy="mu-GDP and rho-zCDP",
        needs="largest_eigenvalue, least_eigenvalue",
        assumes="Gaussian rows with mean zero",
        algorithm="dpcov.rivals.preconditioning:estimate_preconditioning",
        gaussian=True,
        requires=("largest_eigenvalue", "least_eigenvalue"),
    ),
    Method(
        name="unbounded",
        citation="Kamath, Mouzakis, Singhal, Steinke, Ullman: A Private and Computationally-Efficient "
        "Estimator for Unbounded Gaussians (COLT 2022)",
        privacy="delta-approximate rho-zCDP",
        needs="a delta; many rows",
        assumes="Gaussian rows with mean zero",
        algorithm="dpcov.rivals.unbounded:estimate_unbounded",
        delta_share=lambda _options: Fraction(1, 2),
    ),
    Method(
        name="separate",
        citation="Dong, Liang, Yi: Differentially Private Covariance Revisited (NeurIPS 2022), SeparateCov",
        privacy="mu-GDP and rho-zCDP",
        needs="radius",
        assumes="no row is longer than radius; made for the Frobenius norm with many columns",
        algorithm="dpcov.rivals.separate:estimate_separate",
        gaussian=True,
        requires=("radius",),
    ),
    Method(
        name="adaptive",
        citation="Dong, Liang, Yi: Differentially Private Covariance Revisited (NeurIPS 2022), AdaptiveCov",
        privacy="rho-zCDP",
        needs="radius",
        assumes="no row is longer than radius, and most are much shorter; made for the Frobenius norm",
        algorithm="dpcov.rivals.adaptive:estimate_adaptive",
        requires=("radius",),
    ),
    Method(
        name="exponential",
        citation="Amin, Dick, Kulesza, Munoz Medina, Vassilvitskii: Differentially Private Covariance "
        "Estimation (NeurIPS 2019)",
        privacy="epsilon-DP with epsilon = sqrt(2 rho), in idealised arithmetic",
        needs="radius",
        assumes="no row is longer than radius; errors are relative to the largest eigenvalue",
        algorithm="dpcov.rivals.exponential:estimate_exponential",
        requires=("radius",),
        vetted=False,
    ),
    Method(
        name="leverage",
        citation="Brown, Hopkins, Smith: Fast, Sample-Efficient, Affine-Invariant Private Mean and "
        "Covariance Estimation for Subgaussian Distributions (COLT 2023)",
        privacy="delta-approximate rho-zCDP, in idealised arithmetic",
        needs="a delta; leverage, unless rows are Gaussian; many rows",
        assumes="no row has a high leverage, as in a subgaussian table with mean zero; may fail, and says so",
        algorithm="dpcov.rivals.leverage:estimate_leverage",
        delta_share=lambda _options: Fraction(1, 2),
        vetted=False,
    ),
)

_WITHOUT_ALGORITHM = (
    Method(
        name="aden-ali-2020",
        citation="Aden-Ali, Ashtiani, Kamath: On the Sample Complexity of Privately Learning Unbounded "
        "High-Dimensional Gaussians (ALT 2021)",
        privacy="(epsilon, delta)-DP",
        needs="nothing",
        assumes="Gaussian rows",
        reason="it chooses among a cover of all Gaussians, whose size is exponential in the columns",
        rate="n ~ d^2 / a^2 + d^2 / (a epsilon) + log(1/delta) / epsilon for an error of a in total "
        "variation",
    ),
    Method(
        name="kothari-2021",
        citation="Kothari, Manurangsi, Velingker: Private Robust Estimation by Stabilizing Convex "
        "Relaxations (COLT 2022)",
        privacy="(epsilon, delta)-DP",
        needs="nothing",
        assumes="Gaussian rows, a constant share of which may be outliers",
        reason="it solves sum-of-squares programs, which are out of reach beyond a handful of columns",
        rate="n ~ d^8 (up to powers of log(1/delta) / epsilon) for an error that depends on the outliers",
    ),
    Method(
        name="alabi-2023",
        citation="Alabi, Kothari, Tankala, Venkat, Zhang: Privately Estimating a Gaussian: Efficient, Robust "
        "and Optimal (STOC 2023)",
        privacy="(epsilon, delta)-DP",
        needs="nothing",
        assumes="Gaussian rows, a constant share of which may be outliers",
        reason="it solves sum-of-squares programs, which are out of reach beyond a handful of columns",
        rate="n ~ d^2 / a^2 + d^2 / (a epsilon) (up to powers of log(1/delta)) for an error of a in total "
        "variation",
    ),
)

METHODS: tuple[Method, ...] = (*_BUILT, *_WITHOUT_ALGORITHM)
