//! The proxy, as a program sees it that has no other way out.

mod bounds;
mod door;
mod forwards;
mod tunnels;
mod upstreams;
