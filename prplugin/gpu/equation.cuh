// The equation of a step.

// x := alpha * (P^T x + D w) + (1 - alpha) v. `target` (w) and `teleport` ((1 - alpha) v) have n entries and step 1, or
// one entry for all and step 0.
struct Equation {
    double alpha;
    const double *target;
    long long target_step;
    const double *teleport;
    long long teleport_step;
    const double *inverse_out_weight;  // 1 / W (1 if weighted); 0 for dangling vertices
};
