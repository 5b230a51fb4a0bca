//! `[gateway]`: how much clients of `toolyard mcp` may send.

use super::section::{Placed, Section};
use toolyard_mcp::ClientLimits;

/// The smallest limit for a message, in bytes: a client's first message has to fit.
const MESSAGE_MIN: u64 = 4 << 10;

/// How many of the largest messages must fit at least into what may be in flight.
const MESSAGES_MIN: u64 = 16;

/// What limits for what is in flight must be below, in bytes.
const IN_FLIGHT_END: u64 = 4 << 30;

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> ClientLimits {
    let defaults = ClientLimits::default();
    let (message, in_flight) = (section.placed_size("message_max"), section.placed_size("in_flight_max"));
    let at = in_flight.as_ref().or(message.as_ref()).map(|(_, at)| at.clone());
    let bytes = |given: Option<Placed<u64>>, default: usize| given.map_or(default as u64, |(bytes, _)| bytes);
    let message = bytes(message, defaults.message_bytes_max());
    let in_flight = bytes(in_flight, defaults.in_flight_bytes_max());
    if let (Err(what), Some(at)) = (check(message, in_flight), at) {
        section.report(&at, format!("{}{what}", section.prefix()));
    }
    section.finish();
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    defaults.message_bytes(size(message)).in_flight_bytes(size(in_flight))
}

fn check(message: u64, in_flight: u64) -> Result<(), String> {
    if message < MESSAGE_MIN {
        return Err(format!("message_max must be at least {MESSAGE_MIN}B"));
    }
    if in_flight < message.saturating_mul(MESSAGES_MIN) {
        return Err(format!("in_flight_max must be at least {MESSAGES_MIN} times message_max"));
    }
    if in_flight >= IN_FLIGHT_END {
        return Err("in_flight_max must be less than 4GiB".to_owned());
    }
    Ok(())
}
