// Anderson mixing of the iterates of one vector; `prplugin.numerics` has the mathematics.
//
// The history holds moves: the residual y - x of each step, and the jump z - y of each mix from y to z. A mix is
//
//     z = sum_j a_j y_j = y_last - sum_k (sum_(j<k) a_j) d_k
//
// over the moves d_k in their order, with weights a_j of sum 1 that minimize ||sum_j a_j f_j|| over the residuals f_j.
#pragma once

#include "native.hpp"

constexpr i64 MOST_ROWS = 24;        // of a history
constexpr f64 RIDGE = 1e-12;         // relative to the trace: residuals may be nearly dependent
constexpr f64 MIN_GAIN = 0.15;       // of a mix, in plain steps

// Minimize a^T M a over a of sum 1, for the k x k matrix M of dot products of residuals, the newest one last.
//
// With a = e_last - T^T g, where T takes differences of neighbours, it is (T M T^T) g = T M e_last. With its ridge the
// matrix is positive definite, so elimination needs no pivoting.
static inline void mixing_weights(const f64 (*products)[MOST_ROWS], i64 k, f64* weights) {
    f64 matrix[MOST_ROWS][MOST_ROWS], right[MOST_ROWS], trace = 0;
    i64 size = k - 1;
    for (i64 i = 0; i < size; i++) {
        for (i64 j = 0; j < size; j++) {
            matrix[i][j] = (products[i + 1][j + 1] - products[i][j + 1]) - (products[i + 1][j] - products[i][j]);
        }
        right[i] = products[i + 1][k - 1] - products[i][k - 1];
        trace += matrix[i][i];
    }
    for (i64 i = 0; i < size; i++) matrix[i][i] += trace > 0 ? RIDGE * trace : 1.0;
    for (i64 pivot = 0; pivot < size; pivot++) {
        for (i64 i = pivot + 1; i < size; i++) {
            f64 factor = matrix[i][pivot] / matrix[pivot][pivot];
            for (i64 j = pivot; j < size; j++) matrix[i][j] -= factor * matrix[pivot][j];
            right[i] -= factor * right[pivot];
        }
    }
    for (i64 pivot = size - 1; pivot >= 0; pivot--) {
        right[pivot] /= matrix[pivot][pivot];
        for (i64 i = 0; i < pivot; i++) right[i] -= matrix[i][pivot] * right[pivot];
    }
    for (i64 i = 0; i < k; i++) weights[i] = i == k - 1;
    for (i64 i = 0; i < size; i++) {
        weights[i] += right[i];
        weights[i + 1] -= right[i];
    }
}

// Order of the moves in the rows of the history, which are written in turn, and when to mix.
class Mixing {
  public:
    // `period` steps from one mix to the next; residuals of at most `cycles` periods are mixed. Without enough rows for
    // them, all steps are plain.
    Mixing() = default;
    Mixing(i64 period, i64 cycles, i64 rows) : period_(period), cycles_(cycles), rows_(rows) {
        ended_ = period < 2 || cycles < 1 || rows > MOST_ROWS || period * cycles + cycles - 1 > rows;
    }

    void restart() { size_ = since_ = 0; }

    bool records() const { return !ended_ && !paused_; }
    bool ended() const { return ended_; }

    // Row that receives the next move: a free one, or that of the oldest move, which a mix reads first.
    i64 next_row() const { return next_ % rows_; }

    // Record a step, and return whether a cycle has ended, so that a mix follows. It does not depend on the goal: the
    // tolerance only decides where the same iteration ends.
    //
    // Mixing that has paused begins again where the changes shrink by less than the square root of the factor at which
    // it paused: slow modes, which it removes, set the pace once the fast ones have gone.
    bool after_step(f64 change, f64 before) {
        if (paused_) {
            paused_ = !(change > before * slower_);
            gained_little_ = false;
            restart();
            return false;
        }
        add(true);
        return ++since_ == period_;
    }

    i64 size() const { return size_; }
    i64 row(i64 k) const { return (next_ - size_ + k) % rows_; }
    bool is_step(i64 k) const { return is_step_[row(k)]; }
    bool is_new(i64 k) const { return k >= size_ - since_; }

    // Write the factor of each move in the correction y_last - z; return whether it is finite.
    bool factors(const f64 (*products)[MOST_ROWS], f64* factors) {
        f64 residuals[MOST_ROWS][MOST_ROWS], weights[MOST_ROWS];
        i64 steps[MOST_ROWS], k = 0;
        for (i64 i = 0; i < size_; i++)
            if (is_step(i)) steps[k++] = row(i);
        for (i64 i = 0; i < k; i++)
            for (i64 j = 0; j < k; j++) residuals[i][j] = products[steps[i]][steps[j]];
        mixing_weights(residuals, k, weights);
        // Mixing pauses after two mixes that gain less than `MIN_GAIN` steps at the rate of the last one.
        f64 norm = 0, last = residuals[k - 1][k - 1], before = residuals[k - 2][k - 2];
        for (i64 i = 0; i < k; i++)
            for (i64 j = 0; j < k; j++) norm += weights[i] * residuals[i][j] * weights[j];
        bool gains_little = last < before && norm > last * pow(last / before, MIN_GAIN);
        paused_ = gains_little && gained_little_;
        if (paused_) slower_ = pow(last / before, 0.25);  // the norms are squared
        gained_little_ = gains_little;
        f64 sum = 0;
        bool finite = true;
        for (i64 i = 0, step = 0; i < size_; i++) {
            factors[i] = sum;
            if (is_step(i)) sum += weights[step++];
            finite &= isfinite(sum) != 0;
        }
        return finite;
    }

    // Keep the moves of the last cycles - 1 periods, and the jump.
    void after_mix() {
        since_ = 0;
        size_ = least(size_, period_ * (cycles_ - 1));
        if (cycles_ > 1) add(false);
    }

  private:
    void add(bool is_step) {
        is_step_[next_row()] = is_step;
        next_++;
        size_++;
    }

    i64 period_ = 0, cycles_ = 0, rows_ = 1, size_ = 0, since_ = 0, next_ = 0;
    i64 ended_ = true, paused_ = false, gained_little_ = false;  // no bool, so that no padding is copied
    f64 slower_ = 0;
    bool is_step_[MOST_ROWS] = {};  // of the move in each row
};
