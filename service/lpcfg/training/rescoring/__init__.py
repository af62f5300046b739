"""Learn the rescoring layer from charts of trees that the members below it have not seen."""
