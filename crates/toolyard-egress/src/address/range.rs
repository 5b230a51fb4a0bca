//! The ranges of addresses that are not public, after the registries of IANA for special purposes.

use NotPublic as Is;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// What an address is that the internet does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotPublic {
    /// "This host", which systems take for the loopback address.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The network of a provider between its customers and the internet (CGNAT).
    Shared,
    /// This link alone, with the metadata services of clouds.
    LinkLocal,
    /// A private network of IPv6.
    UniqueLocal,
    /// A private network of IPv6, by an older standard.
    SiteLocal,
    /// Many receivers.
    Multicast,
    /// Everybody on this link.
    Broadcast,
    /// For examples in texts.
    Documentation,
    /// For measurements of networks.
    Benchmarking,
    /// An address of IPv4 that a gateway translates (NAT64).
    Translated,
    /// An address of IPv4 written as one of IPv6.
    Mapped,
    /// Not given to anybody, or for protocols of the internet's own.
    Reserved,
}

type Range<A> = (A, u32, NotPublic);

/// The first that contains an address counts.
const V4: [Range<Ipv4Addr>; 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Is::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Is::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Is::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Is::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Is::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Is::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Is::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Is::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Is::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Is::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Is::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Is::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Is::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Is::Multicast),
    (Ipv4Addr::BROADCAST, 32, Is::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Is::Reserved),
];

/// The first that contains an address counts.
const V6: [Range<Ipv6Addr>; 14] = [
    (Ipv6Addr::UNSPECIFIED, 128, Is::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Is::Loopback),
    (v6(0, 0, 0), 96, Is::Mapped),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, Is::Mapped),
    (v6(0x64, 0xff9b, 0), 96, Is::Translated),
    (v6(0x64, 0xff9b, 1), 48, Is::Translated),
    (v6(0x2001, 2, 0), 48, Is::Benchmarking),
    (v6(0x2001, 0xdb8, 0), 32, Is::Documentation),
    (v6(0x3fff, 0, 0), 20, Is::Documentation),
    (v6(0xfc00, 0, 0), 7, Is::UniqueLocal),
    (v6(0xfe80, 0, 0), 10, Is::LinkLocal),
    (v6(0xfec0, 0, 0), 10, Is::SiteLocal),
    (v6(0xff00, 0, 0), 8, Is::Multicast),
    // For protocols, but for Teredo, which is looked into before.
    (v6(0x2001, 0, 0), 23, Is::Reserved),
];

/// All that is given to networks at all.
const V6_UNICAST: (Ipv6Addr, u32) = (v6(0x2000, 0, 0), 3);

const fn v6(a: u16, b: u16, c: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)
}

impl NotPublic {
    /// What an address is, unless it is public.
    ///
    /// # Examples
    /// ```
    /// use toolyard_egress::NotPublic;
    /// let of = |text: &str| NotPublic::of(text.parse().unwrap());
    /// assert_eq!(of("1.1.1.1"), None);
    /// assert_eq!(of("127.0.0.1"), Some(NotPublic::Loopback));
    /// assert_eq!(of("2002:a00:1::"), Some(NotPublic::Private)); // 10.0.0.1 by way of 6to4
    /// ```
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "an address of this machine",
            Self::Private => "a private address",
            Self::Shared => "an address of a provider's own network",
            Self::LinkLocal => "a link-local address",
            Self::UniqueLocal => "a unique local address",
            Self::SiteLocal => "a site-local address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarks",
            Self::Translated => "a translated IPv4 address",
            Self::Mapped => "an IPv4 address in IPv6",
            Self::Reserved => "a reserved address",
        }
    }
}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn of_v4(address: Ipv4Addr) -> Option<NotPublic> {
    let bits = |address: Ipv4Addr| u128::from(address.to_bits()) << 96;
    V4.iter().find(|range| is_in(bits(address), bits(range.0), range.1)).map(|range| range.2)
}

fn of_v6(address: Ipv6Addr) -> Option<NotPublic> {
    if let Some(inside) = tunnelled(address) {
        return inside.into_iter().find_map(of_v4);
    }
    let bits = address.to_bits();
    let found = V6.iter().find(|range| is_in(bits, range.0.to_bits(), range.1)).map(|range| range.2);
    let is_unicast = is_in(bits, V6_UNICAST.0.to_bits(), V6_UNICAST.1);
    found.or((!is_unicast).then_some(Is::Reserved))
}

/// The addresses of IPv4 to which packets for this one are sent: of the gateway in 6to4, of the server and of the host
/// in Teredo, where that of the host has all its bits turned over.
fn tunnelled(address: Ipv6Addr) -> Option<[Ipv4Addr; 2]> {
    let [a, b, c, d, .., y, z] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b) {
        (0x2002, _) => Some([v4(b, c); 2]),
        (0x2001, 0) => Some([v4(c, d), v4(!y, !z)]),
        _ => None,
    }
}

fn is_in(address: u128, network: u128, prefix: u32) -> bool {
    (address ^ network) >> (128 - prefix) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The neighbour below, the first, the last, and the neighbour above; `None` where there is no neighbour.
    type Row = (Option<&'static str>, &'static str, &'static str, Option<&'static str>);

    fn of(text: &str) -> Option<NotPublic> {
        NotPublic::of(text.parse().unwrap())
    }

    /// Both ends are of this kind, and neither neighbour is.
    fn is_exactly(kind: NotPublic, rows: &[Row]) {
        for (below, first, last, above) in rows {
            assert_eq!([of(first), of(last)], [Some(kind); 2], "{first} {last}");
            for next in [below, above].into_iter().flatten() {
                assert_ne!(of(next), Some(kind), "{next}");
            }
        }
    }

    /// Both ends are of this kind, and both neighbours are public.
    fn is_amid_public(kind: NotPublic, rows: &[Row]) {
        is_exactly(kind, rows);
        for (below, _, _, above) in rows {
            let around = [below, above].map(|next| next.and_then(of));
            assert_eq!(around, [None, None], "{below:?} {above:?}");
        }
    }

    /// SB-10: each range of IPv4, from its first to its last address.
    #[test]
    fn ranges_of_ipv4_end_where_they_should() {
        let amid = |kind, below, first, last, above| {
            is_amid_public(kind, &[(Some(below), first, last, Some(above))]);
        };
        is_amid_public(Is::Unspecified, &[(None, "0.0.0.0", "0.255.255.255", Some("1.0.0.0"))]);
        amid(Is::Private, "9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0");
        amid(Is::Shared, "100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0");
        amid(Is::Loopback, "126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0");
        amid(Is::LinkLocal, "169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0");
        amid(Is::Private, "172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0");
        amid(Is::Reserved, "191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0");
        amid(Is::Documentation, "192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0");
        amid(Is::Reserved, "192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0");
        amid(Is::Private, "192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0");
        amid(Is::Benchmarking, "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0");
        amid(Is::Documentation, "198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0");
        amid(Is::Documentation, "203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0");
        let before = Some("223.255.255.255");
        is_exactly(Is::Multicast, &[(before, "224.0.0.0", "239.255.255.255", Some("240.0.0.0"))]);
        assert_eq!(before.and_then(of), None);
        let (before, last) = (Some("239.255.255.255"), Some("255.255.255.255"));
        is_exactly(Is::Reserved, &[(before, "240.0.0.0", "255.255.255.254", last)]);
        assert_eq!(last.and_then(of), Some(Is::Broadcast));
    }

    /// SB-10: each range of IPv6, from its first to its last address.
    #[test]
    fn ranges_of_ipv6_end_where_they_should() {
        let exactly = |kind, below, first, last, above| {
            is_exactly(kind, &[(Some(below), first, last, Some(above))]);
        };
        is_exactly(Is::Unspecified, &[(None, "::", "::", Some("::1"))]);
        exactly(Is::Loopback, "::", "::1", "::1", "::2");
        exactly(Is::Mapped, "::1", "::2", "::ffff:ffff", "::1:0:0");
        exactly(Is::Mapped, "::fffe:ffff:ffff", "::ffff:0.0.0.0", "::ffff:255.255.255.255", "::1:0:0:0");
        exactly(Is::Translated, "64:ff9a:ffff::", "64:ff9b::", "64:ff9b::255.255.255.255", "64:ff9b::1:0:0");
        exactly(
            Is::Translated,
            "64:ff9b:0:ffff::",
            "64:ff9b:1::",
            "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
            "64:ff9b:2::",
        );
        exactly(
            Is::UniqueLocal,
            "fbff:ffff::",
            "fc00::",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "fe00::",
        );
        exactly(Is::LinkLocal, "fe7f:ffff::", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::");
        exactly(Is::SiteLocal, "febf:ffff::", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ff00::");
        let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        is_exactly(Is::Multicast, &[(Some("feff:ffff::"), "ff00::", last, None)]);
        exactly(Is::Benchmarking, "2001:1:ffff::", "2001:2::", "2001:2:0:ffff:ffff::", "2001:2:1::");
        exactly(Is::Reserved, "2000:ffff::", "2001:1::", "2001:1:ffff::", "2001:2::");
        let (last, after) = ("2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::");
        exactly(Is::Reserved, "2001:2:0:ffff::", "2001:2:1::", last, after);
        // What is not given to anybody is around what is.
        exactly(Is::Reserved, "2000::", "100::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::");
        exactly(Is::Reserved, "3ffe::", "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::");
        let amid = |kind, below, first, last, above| {
            is_amid_public(kind, &[(Some(below), first, last, Some(above))]);
        };
        amid(Is::Documentation, "2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff::ffff", "2001:db9::");
        amid(Is::Documentation, "3ffe:ffff::", "3fff::", "3fff:fff:ffff:ffff:ffff::", "3fff:1000::");
        assert_eq!(["2000::", "2001:200::", "2606:4700::1111", "2a00::"].map(of), [None; 4]);
    }

    /// SB-10: what is tunnelled to a private address is private.
    #[test]
    fn tunnels_are_looked_into() {
        assert_eq!(of("2002:0808:0808::1"), None);
        assert_eq!(of("2002:7f00:0001::1"), Some(Is::Loopback));
        assert_eq!(of("2002:a9fe:a9fe::"), Some(Is::LinkLocal));
        // The server is 8.8.8.8; the host 1.1.1.1, then 192.168.0.1.
        assert_eq!(of("2001:0:808:808::fefe:fefe"), None);
        assert_eq!(of("2001:0:808:808::3f57:fffe"), Some(Is::Private));
        // The server is 10.0.0.1.
        assert_eq!(of("2001:0:a00:1::fefe:fefe"), Some(Is::Private));
        assert_eq!(of("2003::"), None);
    }
}
