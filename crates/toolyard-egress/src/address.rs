//! Which addresses may be dialled.

mod range;

pub use range::NotPublic;

use std::net::IpAddr;

/// Which addresses may be dialled for an origin.
///
/// # Examples
/// ```
/// use toolyard_egress::{Addresses, NotPublic};
/// let cloud = "169.254.169.254".parse().unwrap();
/// assert_eq!(Addresses::Public.check(cloud), Err(NotPublic::LinkLocal));
/// assert_eq!(Addresses::Any.check(cloud), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Addresses {
    /// Those that the whole internet reaches.
    #[default]
    Public,
    /// Those of this machine and of its networks too.
    Any,
}

impl Addresses {
    /// The addresses of an origin for which private ones are allowed, or are not.
    pub const fn with_private(allow: bool) -> Self {
        if allow { Self::Any } else { Self::Public }
    }

    /// Whether this address may be dialled.
    ///
    /// # Errors
    /// [`NotPublic`]: what kind of address it is.
    pub fn check(self, address: IpAddr) -> Result<(), NotPublic> {
        match (self, NotPublic::of(address)) {
            (Self::Public, Some(why)) => Err(why),
            _ => Ok(()),
        }
    }
}
