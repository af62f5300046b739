"""Learning the rescoring layer from charts of trees that their members have not seen."""
