//! Which hosts a program may reach.

use crate::{address::Addresses, origin::Destination};
use std::{fmt, sync::Arc};
use toolyard_core::{Host, HostPattern};

/// Says which addresses a host may have; `None` if it is not granted.
type Judge = Arc<dyn Fn(&Host) -> Option<Addresses> + Send + Sync>;

/// Hosts that are granted, and the addresses that they may have.
#[derive(Debug, Clone, Default)]
pub(super) struct Grants(Vec<Grant>);

#[derive(Clone)]
enum Grant {
    Hosts(HostPattern, Addresses),
    Judged(Judge),
}

impl Grant {
    fn of(&self, host: &Host) -> Option<Addresses> {
        match self {
            Self::Hosts(hosts, may) => hosts.covers(host).then_some(*may),
            Self::Judged(judge) => judge(host),
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(hosts, may) => f.debug_tuple("Hosts").field(hosts).field(may).finish(),
            Self::Judged(_) => f.write_str("Judged"),
        }
    }
}

impl Grants {
    pub(super) fn push(&mut self, hosts: HostPattern, may: Addresses) {
        self.0.push(Grant::Hosts(hosts, may));
    }

    pub(super) fn push_judge(&mut self, judge: impl Fn(&Host) -> Option<Addresses> + Send + Sync + 'static) {
        self.0.push(Grant::Judged(Arc::new(judge)));
    }

    /// The addresses that this host may have, by all the grants that cover it; `None` if none does.
    pub(super) fn of(&self, to: &Destination) -> Option<Addresses> {
        let host = Host::parse(&to.to_string()).ok()?;
        let mut may = self.0.iter().filter_map(|grant| grant.of(&host));
        let first = may.next()?;
        Some(may.fold(first, |all, may| if may == Addresses::Any { may } else { all }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-10: a grant is for the hosts and ports that it names; that of private addresses too.
    #[test]
    fn a_grant_is_for_what_it_names() {
        let mut grants = Grants::default();
        for (hosts, may) in [
            ("*.example.com:443", Addresses::Public),
            ("db.example.com", Addresses::Any),
            ("10.0.0.1", Addresses::Any),
        ] {
            grants.push(hosts.parse().unwrap(), may);
        }
        let of = |host: &str, port| grants.of(&Destination::new(&Host::parse(host).unwrap(), port));
        assert_eq!(of("a.example.com", 443), Some(Addresses::Public));
        assert_eq!([of("db.example.com", 443), of("db.example.com", 5432)], [Some(Addresses::Any); 2]);
        assert_eq!([of("0x0a.1", 1), of("[::ffff:10.0.0.1]", 1)], [Some(Addresses::Any); 2]);
        assert_eq!([of("a.example.com", 80), of("example.com", 443), of("10.0.0.2", 1)], [None; 3]);
    }

    /// SB-10: who judges is asked for the host with its port, in its canonical name.
    #[test]
    fn a_judge_is_asked_for_each_host() {
        let mut grants = Grants::default();
        let one: HostPattern = "10.0.0.1:80".parse().unwrap();
        grants.push_judge(move |host| one.covers(host).then_some(Addresses::Any));
        grants.push("10.0.0.1".parse().unwrap(), Addresses::Public);
        let of = |host: &str, port| grants.of(&Destination::new(&Host::parse(host).unwrap(), port));
        assert_eq!([of("0x0a.1", 80), of("10.0.0.1", 81)], [Some(Addresses::Any), Some(Addresses::Public)]);
        assert_eq!(of("10.0.0.2", 80), None);
    }
}
