// What of the page evidence can be seen at, and links that lead there. Only what is there becomes a place, and only of a
// place a link is made: none leads to nothing. An address with "#" and the place's id leads there, too.
import { h } from "./dom";

/// What a place shows: a row of the findings, a line of a waterfall, a row of another table, a resource over time, or
/// slices of a cycle.
export type Kind = "slices" | "series" | "finding" | "line" | "row";

export interface Place {
  id: string;
  kind: Kind;
  title: string; // "in the findings"
  about: string; // the function, counter, state or disk that is seen there
  device: string; // "" where it is of none
  /// Opens what hides it; gives what the page scrolls to, and what gets the focus.
  open: () => { at: HTMLElement; focus: HTMLElement };
  /// Something leads there: from now on it is drawn, and printed, in any case.
  wanted?: () => void;
}

export interface Places {
  all: Map<string, Place>;
  found: HTMLElement | null; // what was gone to last
}

export function noPlaces(): Places {
  return { all: new Map(), found: null };
}

export function addPlace(places: Places, place: Place): void {
  if (!places.all.has(place.id)) places.all.set(place.id, place);
}

/// False: there is no such place.
export function goTo(places: Places, id: string): boolean {
  const place = places.all.get(id);
  if (!place) return false;
  const { at, focus } = place.open();
  places.found?.classList.remove("found");
  places.found = focus;
  focus.classList.add("found");
  at.scrollIntoView({ block: "start" }); // below its scroll margin
  focus.focus({ preventScroll: true });
  return true;
}

export function linkTo(places: Places, place: Place): HTMLAnchorElement {
  place.wanted?.();
  return h("a", {
    href: `#${place.id}`,
    "aria-label": `${place.title}: ${place.about}`,
    click: (event) => {
      if (location.hash !== `#${place.id}`) return; // the change of the address leads there
      event.preventDefault();
      goTo(places, place.id);
    },
  }, place.title);
}

/// Goes to where the address leads, now and whenever it changes.
export function followAddress(places: Places): void {
  const follow = (): boolean => goTo(places, location.hash.slice(1));
  window.addEventListener("hashchange", follow);
  // The browser looked for it before anything was drawn.
  if (location.hash !== "" && !follow()) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}
