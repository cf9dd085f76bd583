//! The falconet binary.
fn main() {}
