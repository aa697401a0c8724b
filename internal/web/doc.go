// Package web is the pages of epd: what a browser shows of a cluster, its queue,
// its jobs and its nodes. They are made on the server from what [Source] answers,
// and work without a script; a small one keeps them up to date.
//
// # Who sees what
//
// A request comes from a [Viewer]. At a Unix socket the kernel says who that is
// ([Site.Socket]); at a port it is a session, begun with a token of the token
// file ([Site.Network]). What a viewer may see is decided where it is asked for:
// a Source is made for one viewer, and answers as the JSON interface does. Pages
// and actions have a least [Role] besides.
//
// # What holds for each request
//
// Names of hosts are checked, so that no other site's page reaches this one by a
// name of its own. Requests that change something have to come from a page of
// this site, with the form's token; whether the viewer may is asked again then.
// Only so many pages are made at once, and nothing here holds up what epd decides.
//
// # Adding a page
//
// A page is a function that makes a [View] of a [Request], and an entry in
// [Site.pages]; an action one that does something and names the page to show next,
// and an entry in [Site.actions].
package web
