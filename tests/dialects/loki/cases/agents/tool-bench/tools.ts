/**
 * Paints.
 * @param colour - the colour
 */
export function paint(colour: string, coats: number = 2) {
  return colour;
}

function own() {}
