//! The macro that marks where a deliberate fault goes; see `fault.rs`.

/// Whether the engine has this fault. Always `false` unless compiled with `--cfg toolyard_faults`.
macro_rules! faulty {
    ($fault:ident) => {{
        #[cfg(toolyard_faults)]
        let is_on = crate::fault::Fault::$fault.is_on();
        #[cfg(not(toolyard_faults))]
        let is_on = false;
        is_on
    }};
}
