//! MCP in both directions, each side as its peer sees it.

mod client;
mod gateway;
mod real;
mod relay;
mod web;
