//! Lists that change.
