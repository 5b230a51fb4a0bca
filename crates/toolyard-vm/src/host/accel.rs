//! What executes a machine's instructions.

use std::fs;

/// What executes the instructions of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accel {
    /// QEMU itself, which needs nothing of the host, and takes some ten times as long.
    #[default]
    Tcg,
    /// The processor, through the kernel's KVM. Not tested: no machine that this was made on has it.
    Kvm,
}

/// Why KVM cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("KVM cannot be used: {why}")]
pub struct NoKvm {
    why: String,
}

impl Accel {
    /// Whether this machine has it.
    ///
    /// # Errors
    /// [`NoKvm`] when `/dev/kvm` cannot be opened, and when the processor says nothing of virtualization: there the device
    /// may exist all the same, and a kernel under it crawls.
    pub fn check(self) -> Result<(), NoKvm> {
        if self == Self::Tcg {
            return Ok(());
        }
        let refused = |why: String| NoKvm { why };
        let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
        opened.map_err(|error| refused(format!("/dev/kvm: {error}")))?;
        let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        match about.split_whitespace().any(|flag| flag == "vmx" || flag == "svm") {
            true => Ok(()),
            false => Err(refused("the processor has neither vmx nor svm".to_owned())),
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }

    /// The model of the processor: all that it can do, since a snapshot stays on its host.
    pub(crate) const fn cpu(self) -> &'static str {
        match self {
            Self::Tcg => "max",
            Self::Kvm => "host",
        }
    }
}
