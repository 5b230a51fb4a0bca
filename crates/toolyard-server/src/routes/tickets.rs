//! `/tickets`: with one, a WebSocket is opened.

use super::document::Common;
use crate::{
    access::{Caller, Scope, TICKET_LIFE},
    app::App,
    problem::Problem,
};
use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

/// A ticket.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ticket {
    /// It is good once.
    ticket: String,
    expires_in_ms: u64,
}

/// Get a ticket for `/stream`, which a page cannot send a header to.
#[utoipa::path(post, path = "/tickets", tag = "events",
    responses((status = 201, description = "A ticket", body = Ticket), Common))]
pub(super) async fn issue(
    State(app): State<App>,
    caller: Caller,
) -> Result<(StatusCode, axum::Json<Ticket>), Problem> {
    caller.needs(&Scope::ALL)?;
    let ticket = app.access.tickets.issue(caller.0);
    let expires_in_ms = u64::try_from(TICKET_LIFE.as_millis()).unwrap_or(u64::MAX);
    Ok((StatusCode::CREATED, axum::Json(Ticket { ticket, expires_in_ms })))
}
