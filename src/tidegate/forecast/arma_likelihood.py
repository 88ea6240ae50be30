"""Exact Gaussian likelihood of an ARMA(p, q) with a mean, and its maximum, as compiled loops.

The innovations algorithm computes the likelihood: after the first max(p, q) values only q
coefficients per step are not zero, and once the innovations' variance has converged a step is the
plain recursion of MST eq. 9. Scale and mean have closed forms given phi and theta, so the search
has p + q dimensions. The objective is a sum of squares, sum (e_t^2 / v_t) * (prod v_t)^(1/n), so
Levenberg-Marquardt finds the minimum in a few passes. phi and theta are parametrised by partial
autocorrelations r = tanh(x), so that every x is a stationary and invertible model.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MAX_ORDER = 8
MAX_UNBOUNDED = 6.5
"""Bound on |x|: autocorrelations up to 0.999995, closer to 1 than 100 values can resolve."""
LONGEST_MOVE = 1.5
SETTLED = 1e-14
"""The innovations' variance counts as converged when it is this close to its limit of 1."""


@njit(cache=True)
def coefficients(unbounded: Vector, out: Vector) -> None:
    """Stationary AR coefficients from unbounded numbers (Durbin-Levinson on r = tanh x)."""
    work = np.empty(MAX_ORDER)
    for k in range(unbounded.size):
        r = np.tanh(unbounded[k])
        for i in range(k):
            work[i] = out[i] - r * out[k - 1 - i]
        for i in range(k):
            out[i] = work[i]
        out[k] = r


@njit(cache=True)
def _autocovariances(phi: Vector, theta: Vector, cross: Vector, gamma: Vector) -> bool:
    """gamma(0..m-1) and cross(k) = sum_{j>=k} theta_j psi_{j-k}, both per unit of sigma^2.

    gamma solves the Yule-Walker equations gamma(k) - sum phi_i gamma(|k-i|) = cross(k), k = 0..p.
    """
    p, q = phi.size, theta.size
    psi = np.zeros(MAX_ORDER + 1)
    psi[0] = 1.0
    for j in range(1, q + 1):
        psi[j] = theta[j - 1]
        for i in range(1, min(j, p) + 1):
            psi[j] += phi[i - 1] * psi[j - i]
    for k in range(cross.size):
        total = 0.0
        for j in range(k, q + 1):
            total += (1.0 if j == 0 else theta[j - 1]) * psi[j - k]
        cross[k] = total
    size = p + 1
    a = np.zeros((size, size + 1))
    for k in range(size):
        a[k, k] += 1.0
        for i in range(1, p + 1):
            a[k, abs(k - i)] -= phi[i - 1]
        a[k, size] = cross[k]
    for column in range(size):
        pivot = column
        for row in range(column + 1, size):
            if abs(a[row, column]) > abs(a[pivot, column]):
                pivot = row
        if abs(a[pivot, column]) < 1e-300:
            return False
        if pivot != column:
            for j in range(column, size + 1):
                a[column, j], a[pivot, j] = a[pivot, j], a[column, j]
        for row in range(column + 1, size):
            factor = a[row, column] / a[column, column]
            if factor != 0.0:
                for j in range(column, size + 1):
                    a[row, j] -= factor * a[column, j]
    for row in range(size - 1, -1, -1):
        total = a[row, size]
        for j in range(row + 1, size):
            total -= a[row, j] * gamma[j]
        gamma[row] = total / a[row, row]
    for k in range(size, gamma.size):
        total = cross[k] if k < cross.size else 0.0
        for i in range(1, p + 1):
            total += phi[i - 1] * gamma[k - i]
        gamma[k] = total
    return bool(gamma[0] > 0.0)


@njit(cache=True)
def innovations(x: Vector, phi: Vector, theta: Vector, e: Vector, b: Vector, v: Vector) -> bool:
    """Innovations of x in `e`, of a constant 1 in `b`, and their variances per sigma^2 in `v`.

    Brockwell and Davis' recursion on W_t = X_t for t <= m and phi(B) X_t after, m = max(p, q):
    the covariances of W vanish beyond lag q there.
    """
    n, p, q = x.size, phi.size, theta.size
    m = max(p, q)
    cross = np.zeros(MAX_ORDER + 2)
    gamma = np.zeros(MAX_ORDER + 2)
    if not _autocovariances(phi, theta, cross[: max(m, p) + 2], gamma[: max(m, p) + 1]):
        return False
    overlap = np.zeros(MAX_ORDER + 2)  # covariances of the moving-average part
    for k in range(q + 1):
        total = 0.0
        for j in range(q + 1 - k):
            left = 1.0 if j == 0 else theta[j - 1]
            total += left * theta[j + k - 1] if j + k > 0 else left
        overlap[k] = total
    width = max(m, q) + 1
    t_row = np.zeros((width, width + 1))  # ring of rows theta_{n,1..}
    settled = False
    for t in range(n):
        guess = 0.0
        guess_one = 0.0
        if settled:
            for i in range(p):
                guess += phi[i] * x[t - 1 - i]
                guess_one += phi[i]
            for j in range(q):
                guess += theta[j] * e[t - 1 - j]
                guess_one += theta[j] * b[t - 1 - j]
            e[t] = x[t] - guess
            b[t] = 1.0 - guess_one
            v[t] = 1.0
            continue
        reach = t if t < m else q  # number of coefficients that are not zero
        if reach > t:
            reach = t
        row = t_row[t % width]
        for j in range(width + 1):
            row[j] = 0.0
        variance = gamma[0] if t < m else overlap[0]
        for k in range(t - reach, t):
            lag = t - k
            if t < m:
                total = gamma[lag]
            elif k < m:
                total = cross[lag] if t < 2 * m else 0.0
            else:
                total = overlap[lag]
            older = t_row[k % width]
            low = t - reach
            if k >= m and k - q > low:
                low = k - q
            for j in range(low, k):
                total -= older[k - j] * row[t - j] * v[j]
            row[lag] = total / v[k]
            variance -= row[lag] * row[lag] * v[k]
        if not variance > 0.0:
            return False
        v[t] = variance
        for j in range(1, reach + 1):
            guess += row[j] * e[t - j]
            guess_one += row[j] * b[t - j]
        if t >= m:
            for i in range(p):
                guess += phi[i] * x[t - 1 - i]
                guess_one += phi[i]
        e[t] = x[t] - guess
        b[t] = 1.0 - guess_one
        if t > m + q and variance - 1.0 < SETTLED:
            # one settled variance is not enough with q > 1: its row must be theta as well
            settled = True
            for j in range(q):
                if abs(row[j + 1] - theta[j]) > 1e-13:
                    settled = False
    return True


@njit(cache=True)
def residuals(
    x: Vector, z: Vector, p: int, q: int, with_mean: bool, work: Vector, out: Vector
) -> tuple[float, float, float]:
    """Write scaled innovations to `out`; return their sum of squares, the mean, and sum log v.

    The sum of squares is infinite where the likelihood cannot be computed. `work` is scratch space
    of 3 x n.
    """
    n = x.size
    phi = np.empty(MAX_ORDER)
    theta = np.empty(MAX_ORDER)
    coefficients(z[:p], phi)
    coefficients(z[p : p + q], theta)
    for j in range(q):  # 1 + theta B + ... is invertible where 1 - theta B - ... is stationary
        theta[j] = -theta[j]
    e, b, v = work[0], work[1], work[2]
    if not innovations(x, phi[:p], theta[:q], e, b, v):
        return np.inf, 0.0, 0.0
    mean = 0.0
    if with_mean:
        above = 0.0
        below = 0.0
        for t in range(n):
            above += e[t] * b[t] / v[t]
            below += b[t] * b[t] / v[t]
        mean = above / below if below > 0.0 else 0.0
    log_v = 0.0
    product = 1.0
    for t in range(n):
        if v[t] != 1.0:
            product *= v[t]
            if product > 1e100 or product < 1e-100:
                log_v += np.log(product)
                product = 1.0
    log_v += np.log(product)
    common = np.exp(log_v / (2 * n))
    total = 0.0
    for t in range(n):
        r = (e[t] - mean * b[t]) * common
        if v[t] != 1.0:
            r /= np.sqrt(v[t])
        out[t] = r
        total += r * r
    if not np.isfinite(total):
        return np.inf, 0.0, 0.0
    return total, mean, log_v


@njit(cache=True)
def _damped_solve(normal: Vector, damping: float, ridge: float, right: Vector, out: Vector) -> None:
    """Solve (N + damping diag N + ridge I) out = right by Cholesky, for a small matrix N."""
    d = right.size
    low = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            s = normal[i, j]
            if i == j:
                s += damping * normal[i, i] + ridge
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, i] = np.sqrt(max(s, 1e-300))
            else:
                low[i, j] = s / low[j, j]
    for i in range(d):
        s = right[i]
        for k in range(i):
            s -= low[i, k] * out[k]
        out[i] = s / low[i, i]
    for i in range(d - 1, -1, -1):
        s = out[i]
        for k in range(i + 1, d):
            s -= low[k, i] * out[k]
        out[i] = s / low[i, i]


@njit(cache=True)
def climb(
    x: Vector, z: Vector, p: int, q: int, with_mean: bool, passes: int, tolerance: float
) -> float:
    """Maximise the likelihood from z, in place, by Levenberg-Marquardt; return the squares."""
    n, d = x.size, p + q
    work = np.empty((3, n))
    here = np.empty(n)
    there = np.empty(n)
    jacobian = np.empty((d, n))
    total = residuals(x, z, p, q, with_mean, work, here)[0]
    if d == 0 or not np.isfinite(total):
        return total
    damping = 1e-3
    normal = np.empty((d, d))
    right = np.empty(d)
    trial = np.empty(d)
    for _ in range(passes):
        for i in range(d):
            step = 1e-6
            kept = z[i]
            z[i] = kept + step
            if not np.isfinite(residuals(x, z, p, q, with_mean, work, there)[0]):
                z[i] = kept
                return total
            z[i] = kept
            for t in range(n):
                jacobian[i, t] = (there[t] - here[t]) / step
        for i in range(d):
            right[i] = 0.0
            for t in range(n):
                right[i] -= jacobian[i, t] * here[t]
            for j in range(i + 1):
                s = 0.0
                for t in range(n):
                    s += jacobian[i, t] * jacobian[j, t]
                normal[i, j] = s
                normal[j, i] = s
        improved = False
        for _try in range(8):
            _damped_solve(normal, damping, 1e-12 * total, right, trial)
            for i in range(d):
                shift = min(max(trial[i], -LONGEST_MOVE), LONGEST_MOVE)
                trial[i] = min(max(z[i] + shift, -MAX_UNBOUNDED), MAX_UNBOUNDED)
            fresh = residuals(x, trial, p, q, with_mean, work, there)[0]
            if fresh < total:
                improved = True
                break
            damping *= 8.0
        if not improved:
            return total
        gained = total - fresh
        total = fresh
        for i in range(d):
            z[i] = trial[i]
        for t in range(n):
            here[t] = there[t]
        damping = max(damping / 8.0, 1e-9)
        if gained < tolerance * total:
            return total
    return total
