//! How many requests an upstream takes of a program, and of those that count against it.
//!
//! ```text
//!   request ─► begin: room here, and in each quota above? ─┬─ no ─► 429, nothing is counted
//!                                                          └─ yes ─► handed on ─┬─ answered ─► served, and its bytes
//!                                                                               └─ not ──────► its room comes back
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The requests that an [`Upstream`](super::Upstream) takes, counted and bounded. Clones share their counts.
///
/// One that is [within](Self::within) another counts against that one too. A request for which there is no room is
/// answered by the proxy with 429. One that the origin does not answer is not counted.
///
/// # Examples
/// ```
/// use toolyard_egress::Quota;
/// let parents = Quota::new(Some(100), None);
/// let own = Quota::new(Some(10), Some(1 << 20)).within(&parents);
/// assert_eq!((own.served(), own.bytes(), own.requests_max()), (0, 0, Some(10)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Quota(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    requests_max: Option<u64>,
    bytes_max: Option<u64>,
    /// Requests that were answered or may be, of all quotas within this one too.
    begun: AtomicU64,
    /// Bytes that have passed, of all quotas within this one too.
    passed: AtomicU64,
    /// Requests of its own that were answered.
    served: AtomicU64,
    /// Bytes of these.
    bytes: AtomicU64,
    above: Option<Quota>,
}

impl Quota {
    /// So many requests, and no further one when so many bytes have passed in both directions; `None` is no bound. A
    /// request that has begun is carried to its end, so that more bytes may pass.
    pub fn new(requests_max: Option<u64>, bytes_max: Option<u64>) -> Self {
        Self(Arc::new(Counted { requests_max, bytes_max, ..Counted::default() }))
    }

    /// One with the same bounds, and counts of its own, which count against the other one too.
    #[must_use]
    pub fn within(&self, above: &Self) -> Self {
        let above = Some(above.clone());
        let Counted { requests_max, bytes_max, .. } = *self.0;
        Self(Arc::new(Counted { requests_max, bytes_max, above, ..Counted::default() }))
    }

    /// How many requests were answered by the origin, without those of quotas within this one.
    pub fn served(&self) -> u64 {
        self.0.served.load(Ordering::Relaxed)
    }

    /// How many bytes these had, heads and answers included.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How many requests there may be.
    pub fn requests_max(&self) -> Option<u64> {
        self.0.requests_max
    }

    /// This quota, and each one above it.
    fn chain(&self) -> impl Iterator<Item = &Counted> {
        std::iter::successors(Some(&*self.0), |quota| quota.above.as_ref().map(|above| &*above.0))
    }

    /// Takes room for a request.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn begin(&self) -> Result<Begun, Spent> {
        for (taken, quota) in self.chain().enumerate() {
            if let Err(spent) = quota.begin() {
                self.chain().take(taken).for_each(Counted::give_back);
                return Err(spent);
            }
        }
        Ok(Begun { quota: self.clone(), is_served: false })
    }
}

impl Counted {
    fn begin(&self) -> Result<(), Spent> {
        let passed = self.passed.load(Ordering::Relaxed);
        if let Some(most) = self.bytes_max.filter(|most| passed >= *most) {
            return Err(Spent { what: "bytes", spent: passed, most });
        }
        let more = |begun| self.requests_max.is_none_or(|most| begun < most).then_some(begun + 1);
        match self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(spent) => Err(Spent { what: "requests", spent, most: self.requests_max.unwrap_or(spent) }),
        }
    }

    fn give_back(&self) {
        self.begun.fetch_sub(1, Ordering::Relaxed);
    }
}

/// There is no room for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{spent} of {most} {what} are used: ask it no more")]
pub(super) struct Spent {
    what: &'static str,
    spent: u64,
    most: u64,
}

/// A request that has room. Dropping it gives that back, unless it was served.
#[derive(Debug)]
pub(super) struct Begun {
    quota: Quota,
    is_served: bool,
}

impl Begun {
    /// The origin has answered.
    pub(super) fn served(&mut self) {
        if !std::mem::replace(&mut self.is_served, true) {
            self.quota.0.served.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has ended, when so many bytes had passed.
    pub(super) fn ended(self, bytes: u64) {
        if self.is_served {
            self.quota.0.bytes.fetch_add(bytes, Ordering::Relaxed);
            for quota in self.quota.chain() {
                quota.passed.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_served {
            self.quota.chain().for_each(Counted::give_back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AG-12: what counts against two bounds is stopped by either, and takes no room where it was stopped.
    #[test]
    fn requests_count_in_each_quota_above() {
        let above = Quota::new(Some(3), None);
        let (one, other) = (Quota::new(Some(2), None).within(&above), Quota::new(None, None).within(&above));
        let served = |quota: &Quota| {
            quota.begin().map(|mut begun| {
                begun.served();
                begun.ended(10);
            })
        };
        served(&one).unwrap();
        served(&one).unwrap();
        assert_eq!(served(&one).unwrap_err().to_string(), "2 of 2 requests are used: ask it no more");
        served(&other).unwrap();
        assert_eq!(served(&other).unwrap_err().to_string(), "3 of 3 requests are used: ask it no more");
        assert_eq!([one.served(), other.served(), above.served()], [2, 1, 0]);
        assert_eq!([one.bytes(), other.bytes(), above.bytes()], [20, 10, 0]);
    }

    /// AG-12: a request that is not answered is not counted, and one that may be takes room.
    #[test]
    fn a_request_that_is_not_answered_is_not_counted() {
        let above = Quota::new(Some(1), None);
        let quota = Quota::new(Some(1), None).within(&above);
        let begun = quota.begin().unwrap();
        quota.begin().unwrap_err();
        drop(begun);
        quota.begin().unwrap().ended(5);
        assert_eq!((quota.served(), quota.bytes()), (0, 0));
        quota.begin().unwrap().served();
        quota.begin().unwrap_err();
    }

    /// AG-12: when so many bytes have passed there is no further request.
    #[test]
    fn bytes_bound_requests_too() {
        let quota = Quota::new(None, Some(100));
        for _ in 0..2 {
            let mut begun = quota.begin().unwrap();
            begun.served();
            begun.ended(60);
        }
        assert_eq!(quota.begin().unwrap_err().to_string(), "120 of 100 bytes are used: ask it no more");
    }
}
