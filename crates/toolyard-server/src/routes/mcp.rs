//! `/mcp`: the MCP gateway on the same port, with sessions of their own for each token (HT-7).

use crate::{
    access::{Caller, Scope, Token},
    app::App,
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, SessionOptions};
use toolyard_mcp::{ClientLimits, Clients, Gateway, Mounted};

/// The gateways, by the tokens of their clients.
pub(crate) struct Gateways {
    engine: Engine,
    clients: Clients,
    limits: ClientLimits,
    stop: CancellationToken,
    by_token: Mutex<HashMap<String, Mounted>>,
}

impl Gateways {
    pub(crate) fn new(
        engine: Engine,
        clients: Clients,
        limits: ClientLimits,
        stop: CancellationToken,
    ) -> Self {
        Self { engine, clients, limits, stop, by_token: Mutex::default() }
    }

    /// That of a token; `options` are those of its sessions.
    fn of(&self, token: &Token, options: impl FnOnce() -> SessionOptions) -> Mounted {
        let mut all = self.by_token.lock();
        if let Some(mounted) = all.get(token.name()) {
            return mounted.clone();
        }
        let gateway = Gateway::new(self.engine.clone(), self.clients.clone());
        let gateway = gateway.client_limits(self.limits).session_options(options());
        let gateway = if token.has(Scope::Approve) { gateway } else { gateway.without_questions() };
        let mounted = gateway.mounted(self.stop.clone());
        all.insert(token.name().to_owned(), mounted.clone());
        mounted
    }
}

/// Answers an MCP client.
pub(super) async fn answer(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let mounted = app.gateways.of(&caller.0, || super::sessions::options_of(&app, &caller.0));
    Ok(mounted.answer(request).await.map(Body::new))
}
