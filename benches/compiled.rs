// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled profiles, as the classifier runs them.

use emud::abi;
use emud::datapath::compiled::matching;
use emud::datapath::stage::compile::{Compiled, PacketTarget, compile, of_number};
use emud::datapath::stage::timeline;
use emud::profile::Profile;

/// All links of a direction, for engine fq.
pub fn compiled(profile: &Profile, direction: u32) -> Vec<Compiled> {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_STAMP,
        ifindex: 0,
        l3: false,
    };
    let one = |(number, link)| compile(link, of_number(1, number), direction, 0, place);
    let links = (0..).zip(profile.links_of(direction)).map(one);
    let mut links = links
        .collect::<Result<Vec<_>, _>>()
        .expect("a spread that can be had");
    matching(profile, direction, &mut links);
    timeline::phases(profile, direction, &mut links, 1, 0);
    links
}
