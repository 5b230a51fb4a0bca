//! The routes, by what they are about. Each handler is one request; what it documents becomes `/openapi.json`.

pub(crate) mod agents;
mod calls;
pub(crate) mod confirmations;
mod document;
mod events;
mod goes_on;
mod health;
mod limits;
mod mcp;
mod metrics;
mod operator;
mod page;
mod reload;
mod results;
pub(crate) mod sessions;
mod socket;
mod streamed;
mod tickets;
pub(crate) mod tools;
pub(crate) mod turns;

use crate::{app::App, problem::Problem};
use axum::{Router, http::StatusCode};
pub(crate) use mcp::Gateways;

use utoipa_axum::{router::OpenApiRouter, routes};

/// All routes, and the document that describes them.
pub(crate) fn router(app: &App) -> Router {
    let (router, mut api) = OpenApiRouter::default()
        .routes(routes!(sessions::open, sessions::list))
        .routes(routes!(sessions::show, sessions::close))
        .routes(routes!(agents::fork))
        .routes(routes!(tools::list))
        .routes(routes!(turns::start))
        .routes(routes!(turns::show, turns::resend))
        .routes(routes!(turns::list))
        .routes(routes!(turns::cancel))
        .routes(routes!(turns::cancel_call))
        .routes(routes!(calls::call))
        .routes(routes!(confirmations::list))
        .routes(routes!(confirmations::list_of_session))
        .routes(routes!(confirmations::show))
        .routes(routes!(confirmations::answer))
        .routes(routes!(events::all))
        .routes(routes!(events::of_session))
        .routes(routes!(tickets::issue))
        .routes(routes!(socket::stream))
        .routes(routes!(operator::status))
        .routes(routes!(operator::set_pool))
        .routes(routes!(operator::set_breaker))
        .routes(routes!(reload::reload))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(page::exchange))
        .split_for_parts();
    document::complete(&mut api);
    let api = std::sync::Arc::new(serde_json::to_string(&api).expect("a document can be written as JSON"));
    router
        .route(
            "/openapi.json",
            axum::routing::get(move |caller, state| document::show(caller, state, api.clone())),
        )
        .route("/mcp", axum::routing::any(mcp::answer))
        .merge(page::files(app))
        .fallback(|| async { Problem::not_found("such resource: see /openapi.json") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "this resource has no such method: see /openapi.json",
            )
        })
        .with_state(app.clone())
}
