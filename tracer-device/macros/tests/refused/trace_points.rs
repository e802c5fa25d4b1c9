use warptrace_device::{trace_loc, trace_points};

trace_points! {
    /// Two of one id.
    pub mod at in "trace_points.rs" {
        ENTER = 1: "the thread begins",
        EVEN = 2: "the element is even",
        ODD = 2: "the element is odd",
    }
}

trace_points! {
    /// No id.
    pub mod none in "trace_points.rs" {
        LEAVE = 0: "the thread ends",
    }
}

fn main() {
    trace_loc(at::ENTER);
    trace_loc(none::LEAVE);
}
