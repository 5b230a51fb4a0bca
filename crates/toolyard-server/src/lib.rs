#![doc = include_str!("../README.md")]

mod access;
mod app;
mod book;
mod events;
mod front;
mod http;
mod notify;
mod options;
mod parent;
mod past;
mod problem;
mod questions;
mod reload;
mod routes;
mod server;
#[cfg(feature = "https")]
mod tls;
#[cfg(not(feature = "https"))]
#[path = "no_tls.rs"]
mod tls;
mod tls_error;
mod wall;

pub use access::{Scope, SecretHash, SecretHashError, SelfApproval, Token, UnknownScope, new_token};
pub use front::Front;
pub use notify::{Notify, WebhookSecret, WebhookSecretError};
pub use options::{Bounds, ServerOptions};
pub use parent::{TalkEnd, TalkError};
pub use past::Recovered;
pub use reload::{ConfigFault, Reload, ReloadError, Reloaded};
pub use server::{ServeError, Server};
pub use tls::Tls;
pub use tls_error::TlsError;
