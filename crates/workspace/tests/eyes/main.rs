//! The eyes against real folders, through the public interface only.

#[cfg(test)]
mod apart;
#[cfg(test)]
mod apply;
#[cfg(test)]
mod common;
#[cfg(test)]
mod elsewhere;
#[cfg(test)]
mod infrastructure;
#[cfg(test)]
mod movement;
#[cfg(test)]
mod protect;
#[cfg(test)]
mod store_damage;
#[cfg(test)]
mod store_disk;
#[cfg(test)]
mod store_gc;
#[cfg(test)]
mod store_git;
#[cfg(test)]
mod store_planted;
#[cfg(test)]
mod trees;
#[cfg(test)]
mod unseen;
