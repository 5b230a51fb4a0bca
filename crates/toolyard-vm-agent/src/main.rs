//! The agent: the first process of a virtual machine, which the host talks to over a serial port.
//!
//! ```text
//!   kernel ─► boot: modules, mounts, busybox ─► hello     the snapshot is taken here
//!          ─► serve: time, entropy, files in ─► program ─► files out
//! ```
//!
//! It serves one call, and then waits for the host to end the machine. When it ends itself, the kernel panics and ends
//! the machine as well. Built static, since there is nothing else in its machine:
//!
//! ```sh
//! RUSTFLAGS="-C target-feature=+crt-static" \
//!     cargo build -p toolyard-vm-agent --release --target x86_64-unknown-linux-gnu
//! ```

#[cfg(target_os = "linux")]
mod boot;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod fresh;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod serve;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    // Anywhere else it would mount over what is there.
    if std::process::id() != 1 {
        eprintln!("toolyard-vm-agent is the first process of a virtual machine, and does nothing elsewhere");
        return std::process::ExitCode::FAILURE;
    }
    match boot::boot().and_then(serve::serve) {
        Ok(never) => match never {},
        // The console, if the machine has one.
        Err(error) => eprintln!("toolyard-vm-agent: {error}"),
    }
    std::process::ExitCode::FAILURE
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("toolyard-vm-agent runs in virtual machines with Linux");
}
