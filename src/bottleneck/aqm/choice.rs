// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of all managers.

use super::{
    Aqm, AqmVerdict, Ared, AredFigures, CoDel, CoDelFigures, Packet, Pi, PiFigures, Pie,
    PieFigures, Red, RedFigures, Rem, RemFigures, Rio, RioFigures,
};

macro_rules! managers {
    ($( $Manager:ident($Figures:ident); )*) => {
        /// A manager that a queue is to have, with its figures.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Choice {
            $( #[doc = concat!(stringify!($Manager), ".")] $Manager($Figures), )*
        }

        /// The manager of one queue.
        #[derive(Debug, Clone)]
        pub enum Manager {
            $( #[doc = concat!(stringify!($Manager), ".")] $Manager($Manager), )*
        }

        impl Manager {
            /// Changes the figures; a manager of another kind starts without state.
            pub fn change(&mut self, choice: Choice, now_ns: u64) {
                match (&mut *self, choice) {
                    $( (Self::$Manager(manager), Choice::$Manager(figures)) => {
                        manager.figures = figures;
                    } )*
                    _ => *self = choice.start(now_ns),
                }
            }

            fn get(&self) -> &dyn Aqm {
                match self {
                    $( Self::$Manager(manager) => manager, )*
                }
            }

            fn get_mut(&mut self) -> &mut dyn Aqm {
                match self {
                    $( Self::$Manager(manager) => manager, )*
                }
            }
        }
    };
}

managers! {
    Red(RedFigures);
    Ared(AredFigures);
    Rio(RioFigures);
    CoDel(CoDelFigures);
    Pie(PieFigures);
    Pi(PiFigures);
    Rem(RemFigures);
}

impl Choice {
    /// Returns the manager of an empty queue.
    pub fn start(self, now_ns: u64) -> Manager {
        match self {
            Self::Red(figures) => Manager::Red(Red::new(figures)),
            Self::Ared(figures) => Manager::Ared(Ared::new(figures, now_ns)),
            Self::Rio(figures) => Manager::Rio(Rio::new(figures)),
            Self::CoDel(figures) => Manager::CoDel(CoDel::new(figures)),
            Self::Pie(figures) => Manager::Pie(Pie::new(figures, now_ns)),
            Self::Pi(figures) => Manager::Pi(Pi::new(figures, now_ns)),
            Self::Rem(figures) => Manager::Rem(Rem::new(figures, now_ns)),
        }
    }
}

impl Aqm for Manager {
    fn due_ns(&self) -> Option<u64> {
        self.get().due_ns()
    }

    fn update(&mut self, backlog: u64) {
        self.get_mut().update(backlog);
    }

    fn skip(&mut self, now_ns: u64, backlog: u64) {
        self.get_mut().skip(now_ns, backlog);
    }

    fn arrive(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        self.get_mut().arrive(packet, backlog)
    }

    fn depart(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        self.get_mut().depart(packet, backlog)
    }

    fn recount(&mut self, waiting: &mut dyn Iterator<Item = Packet>) {
        self.get_mut().recount(waiting);
    }

    fn discard(&mut self, packet: &Packet) {
        self.get_mut().discard(packet);
    }
}
