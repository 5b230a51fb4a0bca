//! What the host holds for one guest.

use crate::{
    directory::Directory,
    memory::Memory,
    output::Stream,
    run::{OPEN_FILES, Run},
};
use wasmtime_wasi::{WasiCtxBuilder, WasiCtxView, WasiView, p1::WasiP1Ctx, p2::pipe::MemoryInputPipe};

/// What a 32-bit memory can have at most.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Entries of the table for what every guest has: its standard streams, and what their readiness takes.
const STREAMS: usize = 8;

/// The data of a call's store.
pub(crate) struct Guest {
    wasi: WasiP1Ctx,
    pub(crate) memory: Memory,
}

impl Guest {
    /// A guest that has what this run says, and nothing of this process.
    ///
    /// # Errors
    /// Which directory cannot be opened, and why.
    pub(crate) fn new(run: &mut Run, [output, errors]: [Stream; 2]) -> Result<Self, String> {
        let mut builder = WasiCtxBuilder::new();
        builder.args(&run.arguments).envs(&run.variables);
        builder.stdin(MemoryInputPipe::new(std::mem::take(&mut run.input))).stdout(output).stderr(errors);
        // These are the defaults or stronger, and said here because all else rests on them.
        builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        builder.socket_addr_check(|_, _| Box::pin(async { false }));
        // Files are for threads that may wait; a guest must not keep one of the async runtime.
        builder.allow_blocking_current_thread(false);
        run.directories
            .iter()
            .try_for_each(|directory: &Directory| directory.open(&mut builder))
            .map_err(|error| format!("a directory cannot be opened for it: {error}"))?;
        let mut wasi = builder.build_p1();
        let own = usize::try_from(run.limits.open_files.unwrap_or(OPEN_FILES)).unwrap_or(usize::MAX);
        wasi.ctx().table.set_max_capacity(own.saturating_add(STREAMS + run.directories.len()));
        let most = run.limits.memory.unwrap_or(MEMORY_BYTES_MAX);
        Ok(Self { wasi, memory: Memory::new(most) })
    }

    /// What preview 1 works on.
    pub(crate) fn preview1(&mut self) -> &mut WasiP1Ctx {
        &mut self.wasi
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi.ctx()
    }
}
