//! Which hosts a program may reach.

use crate::{address::Addresses, origin::Destination};
use toolyard_core::{Host, HostPattern};

/// Hosts that are granted, and the addresses that they may have.
#[derive(Debug, Clone, Default)]
pub(super) struct Grants(Vec<(HostPattern, Addresses)>);

impl Grants {
    pub(super) fn push(&mut self, hosts: HostPattern, may: Addresses) {
        self.0.push((hosts, may));
    }

    /// The addresses that this host may have, by all the grants that cover it; `None` if none does.
    pub(super) fn of(&self, to: &Destination) -> Option<Addresses> {
        let host = Host::parse(&to.to_string()).ok()?;
        let mut may = self.0.iter().filter(|(hosts, _)| hosts.covers(&host)).map(|(_, may)| *may);
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
}
