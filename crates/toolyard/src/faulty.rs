//! Where the engine has a deliberate fault, if it is compiled in and chosen; see `fault.rs`.

/// Whether the engine has this fault. A constant `false` in every build but one with `--cfg toolyard_faults`.
macro_rules! faulty {
    ($fault:ident) => {{
        #[cfg(toolyard_faults)]
        let is_on = crate::fault::Fault::$fault.is_on();
        #[cfg(not(toolyard_faults))]
        let is_on = false;
        is_on
    }};
}
