//! The parts of the tests' machines, as `TOOLYARD_VM_KERNEL`, `_MODULES` and `_AGENT` name them, or where they are found.

use std::{env, path::PathBuf};
use toolyard_vm::{Parts, Wanted};

/// The parts; `None`, with a line that says why, where some are missing. With `TOOLYARD_VM=required` that is a failure.
pub(crate) fn parts() -> Option<Parts> {
    let named = |name: &str| env::var_os(name).map(PathBuf::from);
    let agent = "../../target/x86_64-unknown-linux-gnu/release/toolyard-vm-agent";
    let wanted = Wanted {
        kernel: named("TOOLYARD_VM_KERNEL"),
        modules: named("TOOLYARD_VM_MODULES"),
        agent: named("TOOLYARD_VM_AGENT")
            .or_else(|| Some([env!("CARGO_MANIFEST_DIR"), agent].iter().collect())),
        ..Wanted::default()
    };
    match wanted.find() {
        Ok(parts) => Some(parts),
        Err(missing) => {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let missing = missing.join("; ");
            assert_ne!(env::var("TOOLYARD_VM").as_deref(), Ok("required"), "{missing}");
            eprintln!("skipped, without virtual machines: {missing}");
            None
        }
    }
}
