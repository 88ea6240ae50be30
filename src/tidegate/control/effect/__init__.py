"""Whether more cores have an effect: if they had none three times, no more are added."""
